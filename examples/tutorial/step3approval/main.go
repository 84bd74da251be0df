// Step3approval is an agent that asks a person before its tool runs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/examples/tutorial/scripted"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

func refund(context.Context, struct{ Order int }) (string, error) { return "It is refunded.", nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	model, err := scripted.New()
	if err != nil {
		log.Fatal(err)
	}
	support, err := agent.New("support", agent.Config{
		Model: model, Tools: []tools.Tool{tools.New("refund", "Refunds an order.", refund)},
		Approval: &approval.Policy{}, Listen: os.Getenv("LISTEN"), // the policy asks before every tool
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		fmt.Println(support.Ask(ctx, "session-1", "Refund order 7, please."))
	}()
	if err := support.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
