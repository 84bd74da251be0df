package sink_test

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

func ExampleParseServices() {
	services, err := sink.ParseServices("harbor:http://harbor:8000, pier:https://pier.example/base/")
	fmt.Println(services.Names(), err)
	fmt.Println(services.CallbackURL("pier"))
	fmt.Println(services.Known("http://evil.example"))
	_, err = sink.ParseServices("harbor:harbor:8000")
	fmt.Println(err)
	// Output:
	// [harbor pier] <nil>
	// https://pier.example/base/api/tools/response true
	// false
	// sink: bad host mapping: entry 1 ("harbor"): url is not http(s)://host[:port][/path]
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, 6, 20, 8, 0, 0, 0, time.UTC)
	fmt.Println(sink.ParseRetryAfter("7", now))
	fmt.Println(sink.ParseRetryAfter("Sat, 20 Jun 2026 08:01:00 GMT", now))
	fmt.Println(sink.ParseRetryAfter("soon", now))
	// Output:
	// 7s
	// 1m0s
	// 0s
}

// The program that embeds the sink is the receiver.
func ExampleFunc() {
	t := sink.Func(func(_ context.Context, d topics.Delivery) error {
		content, _ := topics.Lookup(d.Body, "content")
		fmt.Println(d.Route.Service, topics.Text(content))
		return &sink.Failure{Reason: "not now", RetryAfter: time.Second}
	})
	fmt.Println(t.Deliver(context.Background(), topics.Delivery{
		Route: topics.Destination{Kind: topics.KindFunction, Service: "ledger"}, Body: topics.Raw(`{"content":"hi"}`),
	}))
	// Output:
	// ledger hi
	// sink: attempt failed: not now
}

func ExampleCallbackBody() {
	fmt.Println(string(sink.CallbackBody(topics.Delivery{Body: topics.Raw(`{"content":"Berth N4 is free."}`)})))
	// Output: {"result":"Berth N4 is free."}
}
