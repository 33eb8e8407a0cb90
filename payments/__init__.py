"""An organization's payments: loaded into a database, given out page by page.

A request, in order:

    request_ids     X-Request-ID, taken in or made
    urls            path -> view
    negotiation     Accept header -> renderer, or 406
    authentication  Authorization header -> ShownKey on request.auth      (keys: the text; last_use: when it was seen)
    permissions     nobody without a key
    throttling      nobody too often                                      (limits, files: the counting; clients: who)
    views           whose payments, which classes
    parameters      query string -> typed, bounded ListParameters, or InvalidParameter (filters: what can be asked)
    pagination      fetch_page: which rows; KeysetPagination: which links (keyset: the list's order, and places in it)
    listing         what a key sees, by statements that are compiled once (statements, prepared: how; rows: as texts;
                    servers: of which server they are asked)
    models          Organization, ApiKey, Payment; constraints; indexes   (fields, identifiers, currencies: columns;
                    conditions: what they are asked)
    serializers     row -> record; no queries                             (records: the record's form, declared once)
    hal, addresses  the document's shape; what its links name
    renderers       media type and bytes                                  (responses: an answer of bytes)
    conditional     ETag, and 304 for a client that has it               (parameter_schemas, schema: in words)
    browsing        the same as pages to click through, in development
    exceptions      what went wrong -> problems, the one error body       (handlers: outside of any view; outages:
                    what an error of the database's means)

An import, in order:

    management/commands   arguments in, one call, words out
    ingest.reading        files -> records as they stand, each with its place
    ingest.glance         text -> row, where all is plainly right
    ingest.checking       text -> Record, or InvalidRecord                (ingest.card_data: what may not be stored)
    ingest.columns        Record -> row
    ingest.writing        rows into the table, each to its own organization and mode
    ingest.imports        the whole, in one transaction
    changes               word of it, for replicas and for what was summed
    export                rows -> lines that an import takes back
    anonymization         what is personal, blanked
    backup                SQLite's file, copied while it is in use
    demo                  believable records from a count and a seed
    management.distribution   where the rows are kept on several servers

For people:

    root      the way in: links for a program, the documentation for a browser
    admin     payments to look into, keys to make and revoke              (scope: of which organization and mode)
    overview  the last thirty days                                        (totals: summed once, forgotten by an import
                                                                          that changes them; charts: as shapes)

For its operators:

    observing  what is told of statements, imports and replicas, to whoever keeps metrics or traces
"""
