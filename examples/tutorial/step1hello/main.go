// Step1hello is an agent that answers.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/examples/tutorial/scripted"
	"github.com/turntable-streams/turntable/processors/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	model, err := scripted.New()
	if err != nil {
		log.Fatal(err)
	}
	support, err := agent.New("support", agent.Config{Model: model})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		fmt.Println(support.Ask(ctx, "session-1", "Hello!")) // the answer and the error
	}()
	if err := support.Run(ctx); err != nil { // returns when ctx ends
		log.Fatal(err)
	}
}
