ALTER TABLE payments_payment DROP CONSTRAINT payments_payment_pkey, ADD CONSTRAINT payments_payment_pkey PRIMARY KEY (organization_id, id);
ALTER TABLE payments_payment DROP CONSTRAINT payments_payment_organization_id_b9527654_fk_payments_;
SELECT create_reference_table('payments_organization');
SELECT create_distributed_table('payments_payment', 'organization_id');
ALTER TABLE payments_payment ADD CONSTRAINT payments_payment_organization_id_b9527654_fk_payments_ FOREIGN KEY (organization_id) REFERENCES payments_organization (id);
SELECT truncate_local_data_after_distributing_table('payments_payment');
ANALYZE payments_payment;
