package channel_test

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// asker is an account whose platform answers what the test says.
type asker struct {
	adapter.Adapter
	answer func(ctx context.Context) error
}

func (asker) Channel() string                   { return "asker" }
func (a asker) Check(ctx context.Context) error { return a.answer(ctx) }

func ExampleNewChecks() {
	account := asker{answer: func(context.Context) error {
		return &adapter.Failure{Reason: "invalid_auth", Status: 401}
	}}
	checks := channel.NewChecks([]channel.AccountAdapter{{Name: "support", Adapter: account}}, channel.CheckConfig{})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- checks.Run(ctx) }() // beside what receives from the platforms
	for len(checks.Failed()) == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(checks.Failed()["asker/support"])
	stop()
	<-ran
	// Output: the platform refuses the account: invalid_auth; check the token or password of the account and restart
}
