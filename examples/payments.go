// Prints all payments or, with the argument `changes`, payments as they change. docs/api/samples.md explains the program
// and has it in other languages.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

const api = "https://pay.example/v2/payments"
const interval = 10

type page struct {
	Embedded struct {
		Payments []struct {
			ID, CreatedAt, Status string
			Amount                struct{ Value, Currency string }
		}
	} `json:"_embedded"`
	Links map[string]struct{ Href string } `json:"_links"`
}

var client = http.Client{Timeout: 10 * time.Second}

// get returns a page and its ETag, or nil if the page still has the ETag.
func get(url, etag string) (*page, string) {
	for attempt := 0; ; attempt++ {
		status, header, body := send(url, etag)
		switch {
		case status == 200:
			result := new(page)
			check(json.Unmarshal(body, result))
			return result, header.Get("ETag")
		case status == 304:
			return nil, etag
		case (status != 429 && status != 503) || attempt == 4:
			log.Fatal(status, " ", string(body))
		}
		seconds, err := strconv.Atoi(header.Get("Retry-After"))
		check(err)
		sleep(seconds)
	}
}

func send(url, etag string) (int, http.Header, []byte) {
	request, err := http.NewRequest("GET", url, nil)
	check(err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("PAYMENTS_KEY"))
	request.Header.Set("If-None-Match", etag)
	response, err := client.Do(request)
	check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err)
	return response.StatusCode, response.Header, body
}

func walk(url string) {
	etag := ""
	for url != "" {
		var current *page
		current, etag = get(url, etag)
		if current == nil {
			sleep(interval)
			continue
		}
		for _, payment := range current.Embedded.Payments {
			fmt.Println(payment.ID, payment.CreatedAt, payment.Amount.Value, payment.Amount.Currency, payment.Status)
		}
		next, exists := current.Links["later"]
		if !exists {
			next = current.Links["next"]
		}
		url = next.Href
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func sleep(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "changes" {
		walk(api + "/changes?limit=250&from=now")
	} else {
		walk(api + "?limit=250")
	}
}
