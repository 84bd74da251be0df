// Minimal is an agent with a model and a tool behind HTTP. It is the program of the README.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

type order struct {
	Number int `json:"number" jsonschema:"the number of the order"`
}

func status(context.Context, order) (string, error) { return "on its way", nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	model, err := anthropic.New(think.Settings{Key: os.Getenv("ANTHROPIC_API_KEY"), Model: "claude-sonnet-4-5"})
	if err != nil {
		log.Fatal(err)
	}
	support, err := agent.New("support", agent.Config{
		Model:  model,
		Tools:  []tools.Tool{tools.New("order_status", "Finds the status of an order.", status)},
		Listen: os.Getenv("LISTEN"),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := support.Run(ctx); err != nil { // returns when ctx ends, after a drain
		log.Fatal(err)
	}
}
