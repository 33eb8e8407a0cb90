-- Requests paths in random order. Arguments: a file with one path per line, and an API key.
local paths = {}
local threads = 0

function setup(thread)
    threads = threads + 1
    thread:set("seed", threads)
end

function init(arguments)
    for path in io.lines(arguments[1]) do
        paths[#paths + 1] = path
    end
    wrk.headers["Authorization"] = "Bearer " .. arguments[2]
    math.randomseed(seed)
end

function request()
    return wrk.format("GET", paths[math.random(#paths)])
end

function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format(
        '{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "failed": %d}\n',
        summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed
    ))
end
