# Reads the list by each query, and imports payments, with a client of openapi-generator in the load path. See test_generators.py.

require "generated"
require "json"
require "uri"

base_url, key, queries, import_key, records = ARGV

Generated.configure do |config|
  uri = URI(base_url)
  config.scheme, config.host = uri.scheme, "#{uri.host}:#{uri.port}"
  config.access_token = key
  config.params_encoding = :multi # otherwise metadata=KEY:VALUE becomes metadata[0]=KEY:VALUE, which has another meaning
end
api = Generated::PaymentsApi.new

# createdAt[gte] is the argument created_at_gte.
def argument(name)
  name.gsub(/([A-Z])/) { "_#{$1.downcase}" }.sub("[", "_").delete_suffix("]").to_sym
end

ids, details = Hash.new { |hash, name| hash[name] = [] }, {}
JSON.parse(queries).each do |name, query|
  arguments = query.transform_keys { |parameter| argument(parameter) }.merge(limit: 100)
  loop do
    page = api.list_payments(arguments)
    page._embedded.payments.each do |payment|
      ids[name] << payment.id
      details[payment.id] = payment.details
    end
    break unless page._links._next
    arguments[:from] = URI.decode_www_form(URI(page._links._next.href).query).to_h["from"]
  end
end
Generated.configure { |config| config.access_token = import_key }
payments = JSON.parse(records, symbolize_names: true).map { |record| Generated::PaymentInput.build_from_hash(record) }
result = api.import_payments(payments)
puts JSON.generate(ids: ids, details: details, counts: [result.read, result.written, result.unchanged])
