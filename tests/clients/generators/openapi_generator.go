// Reads the list by each query, and imports payments, with a client of openapi-generator, in its package's directory. See test_generators.py.

package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"reflect"
	"strings"

	"generated"
)

// Sets parameters by the generated methods: createdAt[gte] by CreatedAtGte.
func set(request generated.ApiListPaymentsRequest, name string, value any) generated.ApiListPaymentsRequest {
	method := strings.ReplaceAll(strings.Title(strings.ReplaceAll(strings.TrimSuffix(name, "]"), "[", " ")), " ", "")
	argument := reflect.ValueOf(value)
	if items, isList := value.([]any); isList {
		texts := []string{}
		for _, item := range items {
			texts = append(texts, item.(string))
		}
		argument = reflect.ValueOf(texts)
	}
	result := reflect.ValueOf(request).MethodByName(method).Call([]reflect.Value{argument})
	return result[0].Interface().(generated.ApiListPaymentsRequest)
}

func main() {
	var queries map[string]map[string]any
	check(json.Unmarshal([]byte(os.Args[3]), &queries))
	configuration := generated.NewConfiguration()
	configuration.Servers[0].URL = os.Args[1]
	api := generated.NewAPIClient(configuration).PaymentsAPI
	key := context.WithValue(context.Background(), generated.ContextAccessToken, os.Args[2])

	ids, details := map[string][]string{}, map[string]any{}
	for name, query := range queries {
		request := api.ListPayments(key).Limit(100)
		for parameter, value := range query {
			request = set(request, parameter, value)
		}
		for {
			page, _, err := request.Execute()
			check(err)
			for _, payment := range page.Embedded.Payments {
				ids[name] = append(ids[name], payment.Id)
				details[payment.Id] = payment.Details
			}
			if page.Links.Next == nil {
				break
			}
			next, err := url.Parse(page.Links.Next.Href)
			check(err)
			request = request.From(next.Query().Get("from"))
		}
	}
	var payments []generated.PaymentInput
	check(json.Unmarshal([]byte(os.Args[5]), &payments))
	importKey := context.WithValue(context.Background(), generated.ContextAccessToken, os.Args[4])
	result, _, err := api.ImportPayments(importKey).PaymentInput(payments).Execute()
	check(err)
	counts := []int32{result.Read, result.Written, result.Unchanged}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"ids": ids, "details": details, "counts": counts}))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
