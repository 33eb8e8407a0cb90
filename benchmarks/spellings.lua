-- Sends an API key in sixty spellings: after one to sixty spaces. The argument is the key.
local number = 0

function init(arguments)
    key = arguments[1]
end

function request()
    number = number % 60 + 1
    return wrk.format("GET", nil, {["Authorization"] = "Bearer" .. string.rep(" ", number) .. key})
end
