// Reads the list by each query, and imports payments, with a client of openapi-generator. See test_generators.py.

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Method;
import java.util.*;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.PaymentsApi;
import org.openapitools.client.model.*;

public class OpenapiGenerator {
    // The parameters in the order of the generated method's arguments.
    static final List<String> PARAMETERS = new ArrayList<>(List.of("limit", "from", "sort", "status", "method", "customerId", "sequenceType", "currency"));

    static {
        for (String name : List.of("createdAt", "paidAt", "amount"))
            for (String bound : List.of("gte", "gt", "lte", "lt")) PARAMETERS.add(name + "[" + bound + "]");
        PARAMETERS.addAll(List.of("metadata", "If-None-Match"));
    }

    static PaymentsApi api(String url, String key) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(url);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        return new PaymentsApi(client);
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = ApiClient.createDefaultObjectMapper();
        PaymentsApi api = api(arguments[0], arguments[1]);
        Method list = Arrays.stream(PaymentsApi.class.getMethods())
            .filter(method -> method.getName().equals("listPayments") && method.getParameterCount() == PARAMETERS.size())
            .findFirst().get();
        Map<String, List<String>> ids = new HashMap<>();
        Map<String, Details> details = new HashMap<>();
        Map<String, Map<String, Object>> queries = json.readValue(arguments[2], Map.class);
        for (String name : queries.keySet()) {
            Map<String, Object> query = new HashMap<>(queries.get(name));
            query.put("limit", 100);
            ids.put(name, new ArrayList<>());
            while (true) {
                PaginatedPaymentList page = (PaginatedPaymentList) list.invoke(api, PARAMETERS.stream().map(query::get).toArray());
                for (Payment payment : page.getEmbedded().getPayments()) {
                    ids.get(name).add(payment.getId());
                    details.put(payment.getId(), payment.getDetails());
                }
                Link next = page.getLinks().getNext();
                if (next == null) break;
                query.put("from", next.getHref().replaceAll(".*[?&]from=([^&]*).*", "$1"));
            }
        }
        List<PaymentInput> payments = json.readValue(arguments[4], new TypeReference<>() {});
        PaymentImport result = api(arguments[0], arguments[3]).importPayments(payments);
        List<Integer> counts = List.of(result.getRead(), result.getWritten(), result.getUnchanged());
        System.out.println(json.writeValueAsString(Map.of("ids", ids, "details", details, "counts", counts)));
    }
}
