// Step5kill is an agent that is killed while it pays, and continues when it starts again.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/turntable-streams/turntable/examples/tutorial/scripted"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

var pay = tools.New("pay", "Pays an invoice.", func(ctx context.Context, _ struct{ Invoice int }) (string, error) {
	key := tools.CallOf(ctx).Key() // the same when the call is repeated: the bank pays each key once
	fmt.Println("paying with the key", key)
	defer time.Sleep(5 * time.Second) // the bank takes its time to answer
	return "It is paid.", os.WriteFile(fmt.Sprintf("bank/%x", key), []byte("42.00 EUR\n"), 0o600)
})

func main() {
	model, err := scripted.New()
	if err != nil {
		log.Fatal(err)
	}
	support, err := agent.New("support", agent.Config{Model: model, Tools: []tools.Tool{pay}, StateDir: "state"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		fmt.Println(support.AskOnce(ctx, "session-1", "question-1", "Pay invoice 7."))
	}()
	if err := support.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
