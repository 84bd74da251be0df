package discord_test

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/discord"
)

func Example() {
	bot, err := discord.New(discord.Config{Account: "main", Token: "token-of-the-bot"})
	if err != nil {
		panic(err)
	}
	defer bot.Close()
	// In a program the receiver is the bridge, bot is an account of the transport, and Run runs until the program stops.
	receiver := adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		fmt.Println(in.Origin.UserName, "wrote", in.Text)
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := bot.Run(ctx, receiver); err != nil {
		panic(err)
	}
	fmt.Println(bot.Channel(), bot.Traits().Limit.Max)
	// Output: discord 2000
}
