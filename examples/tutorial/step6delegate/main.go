// Step6delegate is two agents, one of which gives the other a task.
package main

import (
	"context"
	"fmt"
	"log"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/examples/tutorial/scripted"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

func count(context.Context, struct{ Item string }) (string, error) { return "There are 12 lamps.", nil }

func main() {
	model, err := scripted.New()
	if err != nil {
		log.Fatal(err)
	}
	warehouse, err := agent.New("warehouse", agent.Config{Model: model, Tools: []tools.Tool{tools.New("count", "Counts an item.", count)}})
	if err != nil {
		log.Fatal(err)
	}
	support, err := agent.New("support", agent.Config{Model: model, Tools: []tools.Tool{warehouse.Tool("ask_warehouse", "Knows the stock.")}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return warehouse.Run(ctx) })
	group.Go(func() error { return support.Run(ctx) })
	fmt.Println(support.Ask(ctx, "session-1", "What is in stock?"))
	stop()
	if err := group.Wait(); err != nil {
		log.Fatal(err)
	}
}
