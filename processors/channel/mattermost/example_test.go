package mattermost_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/mattermost"
)

func Example() {
	bot, err := mattermost.New(mattermost.Config{
		Account: "main", BaseURL: "https://chat.example.org", Token: "token-of-the-bot", Username: "turntable",
		CallbackURL: "https://bridge.example.org/channels/mattermost/actions", CallbackSecret: "a-long-random-secret",
	})
	if err != nil {
		panic(err)
	}
	defer bot.Close()
	// In a program the receiver is the bridge, bot is an account of the transport, and Run runs until the program stops.
	receiver := adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		fmt.Println(in.Origin.UserName, "wrote", in.Text)
		return nil
	})
	actions, err := bot.Actions(receiver)
	if err != nil {
		panic(err)
	}
	http.NewServeMux().Handle("POST /channels/mattermost/actions", actions)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := bot.Run(ctx, receiver); err != nil {
		panic(err)
	}
	fmt.Println(bot.Channel(), bot.Traits().Buttons)
	// Output: mattermost true
}
