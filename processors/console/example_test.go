package console_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/console"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// An agent with a console, at http://127.0.0.1:8080/console/. Open makes everyone on this machine an operator.
func Example() {
	hello := think.Func(func(context.Context, think.Step) (think.Reply, error) { return think.Say("Hello."), nil })
	support, err := agent.New("support", agent.Config{
		Model: hello, Listen: "127.0.0.1:8080", Open: true, Console: console.Config{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(support.Run(context.Background()))
}

// A service that runs the groups of an agent itself has a console below a path of its own. Operators have API keys, which browsers ask
// for as a password.
func ExampleNew() {
	catalog, err := topics.For("support", topics.WithEvents(), topics.WithGates())
	if err != nil {
		fmt.Println(err)
		return
	}
	brokers := []string{"localhost:9092"}
	keys, err := auth.OpenAPIKeys("keys", auth.APIKeyConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.Close()
	page, err := console.New(catalog, publisher, console.Config{Door: auth.Door{Authenticate: keys.Authenticate}, Root: "/ops/console"})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = page.Run(context.Background(), brokers) }()
	http.Handle(page.Root(), page)
}
