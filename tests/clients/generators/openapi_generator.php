<?php
// Reads the list by each query, and imports payments, with a client of openapi-generator. See test_generators.py.

require 'GuzzleHttp/autoload.php';
[, $base_url, $key, $queries, $import_key, $records] = $argv;
spl_autoload_register(function ($class) {
    $path = getcwd() . "/lib/" . str_replace('\\', '/', str_replace('OpenAPI\\Client\\', '', $class)) . '.php';
    if (is_file($path)) {
        require $path;
    }
});

function api($base_url, $key)
{
    $configuration = (new OpenAPI\Client\Configuration())->setHost($base_url)->setAccessToken($key);
    return new OpenAPI\Client\Api\PaymentsApi(new GuzzleHttp\Client(), $configuration);
}
$api = api($base_url, $key);

// createdAt[gte] is the argument created_at_gte.
function argument($name)
{
    return rtrim(str_replace('[', '_', strtolower(preg_replace('/[A-Z]/', '_$0', $name))), ']');
}

$ids = $details = [];
foreach (json_decode($queries, true) as $name => $query) {
    $arguments = ['limit' => 100];
    foreach ($query as $parameter => $value) {
        $arguments[argument($parameter)] = $value;
    }
    do {
        $page = $api->listPayments(...$arguments);
        foreach ($page->getEmbedded()->getPayments() as $payment) {
            $ids[$name][] = $payment->getId();
            $details[$payment->getId()] = $payment->getDetails();
        }
        $next = $page->getLinks()->getNext();
        if ($next) {
            parse_str(parse_url($next->getHref(), PHP_URL_QUERY), $parameters);
            $arguments['from'] = $parameters['from'];
        }
    } while ($next);
}
$payments = OpenAPI\Client\ObjectSerializer::deserialize($records, 'OpenAPI\Client\Model\PaymentInput[]');
$result = api($base_url, $import_key)->importPayments($payments);
$counts = [$result->getRead(), $result->getWritten(), $result->getUnchanged()];
echo json_encode(['ids' => $ids, 'details' => $details, 'counts' => $counts]);
