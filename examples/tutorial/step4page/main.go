// Step4page is an agent with a page that shows what the agent does, and asks.
package main

import (
	"context"
	"embed"
	"log"
	"net/http"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/examples/tutorial/scripted"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

//go:embed index.html
var page embed.FS

func refund(context.Context, struct{ Order int }) (string, error) { return "It is refunded.", nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	model, err := scripted.New()
	if err != nil {
		log.Fatal(err)
	}
	support, err := agent.New("support", agent.Config{
		Model: model, Tools: []tools.Tool{tools.New("refund", "Refunds an order.", refund)},
		Approval: &approval.Policy{}, Listen: os.Getenv("LISTEN"), Pages: http.FileServerFS(page),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := support.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
