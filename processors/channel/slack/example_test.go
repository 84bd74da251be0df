package slack_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/slack"
)

func Example() {
	account, err := slack.New(slack.Config{
		Account:        "main",
		Token:          "xoxb-...",                                   // from a secret store
		SigningSecrets: []string{"8f742231b10e8888abcd99yyyzzz85a5"}, // from a secret store
		TeamID:         "T012AB3C4",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer account.Close()

	// In a program, the receiver is a bridge, and the adapter belongs to a transport of the sink.
	receiver := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error { return nil })
	mux := http.NewServeMux()
	mux.Handle("/channels/slack", account.Handler(receiver))
	fmt.Println(account.Channel(), account.Traits().Limit.Max)
	// Output: slack 3000
}
