package teams_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/teams"
)

func Example() {
	account, err := teams.New(teams.Config{
		Account: "main",
		AppID:   "00000000-0000-0000-0000-000000000000",
		Secret:  "...", // from a secret store
		Tenants: []string{"11111111-1111-1111-1111-111111111111"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer account.Close()

	// In a program, the receiver is a bridge, and the adapter belongs to a transport of the sink.
	receiver := adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error { return nil })
	mux := http.NewServeMux()
	mux.Handle("/api/messages", account.Handler(receiver)) // the messaging endpoint of the bot
	fmt.Println(account.Channel(), account.Traits().Limit.Max)
	// Output: teams 12000
}
