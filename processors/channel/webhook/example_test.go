package webhook_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/webhook"
)

func Example() {
	account, err := webhook.New(webhook.Config{
		Account: "main",
		URL:     "https://receiver.example/messages",
		Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}, // from a secret store
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer account.Close()

	// In a program, the receiver is a bridge, and the adapter belongs to a transport of the sink.
	receiver := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error { return nil })
	mux := http.NewServeMux()
	mux.Handle("/channels/webhook", account.Handler(receiver))
	fmt.Println(account.Channel(), account.Traits().Limit.Max)
	// Output: webhook 65535
}
