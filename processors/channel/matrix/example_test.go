package matrix_test

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/matrix"
)

func Example() {
	bot, err := matrix.New(matrix.Config{
		Account: "main", BaseURL: "https://matrix.example.org", AccessToken: "token-of-the-bot", UserID: "@bot:example.org",
		Since: matrix.NewMemory(), // or a position that is kept in a file
	})
	if err != nil {
		panic(err)
	}
	defer bot.Close()
	// In a program the receiver is the bridge, bot is an account of the transport, and Run runs until the program stops.
	receiver := adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		fmt.Println(in.Origin.User, "wrote", in.Text)
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := bot.Run(ctx, receiver); err != nil {
		panic(err)
	}
	fmt.Println(bot.Channel(), bot.Traits().Threads)
	// Output: matrix true
}
