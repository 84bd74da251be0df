// Step2tool is an agent with a tool.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/examples/tutorial/scripted"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

type order struct {
	Number int `json:"number" jsonschema:"the number of the order"`
}

func status(context.Context, order) (string, error) { return "It is on its way.", nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	model, err := scripted.New()
	if err != nil {
		log.Fatal(err)
	}
	tool := tools.New("order_status", "Finds the status of an order.", status)
	support, err := agent.New("support", agent.Config{Model: model, Tools: []tools.Tool{tool}})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		fmt.Println(support.Ask(ctx, "session-1", "Where is order 7?"))
	}()
	if err := support.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
