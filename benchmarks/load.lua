-- Requests paths in random order. Arguments: a file with one path per line, and an API key.
-- After a path and a tab, a line can have an ETag, which is sent as If-None-Match.
local paths = {}
local headers = {}
local threads = 0

function setup(thread)
    threads = threads + 1
    thread:set("seed", threads)
end

function init(arguments)
    wrk.headers["Authorization"] = "Bearer " .. arguments[2]
    for line in io.lines(arguments[1]) do
        local path, etag = line:match("^([^\t]*)\t?(.*)$")
        paths[#paths + 1] = path
        headers[#paths] = etag ~= "" and with_etag(etag) or nil
    end
    math.randomseed(seed)
end

function with_etag(etag)
    local fields = {["If-None-Match"] = etag}
    for name, value in pairs(wrk.headers) do
        fields[name] = value
    end
    return fields
end

function request()
    local number = math.random(#paths)
    return wrk.format("GET", paths[number], headers[number])
end

function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format(
        '{"requests": %d, "seconds": %f, "bytes": %d, "p50_ms": %f, "p99_ms": %f, "failed": %d}\n',
        summary.requests, summary.duration / 1e6, summary.bytes,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed
    ))
end
