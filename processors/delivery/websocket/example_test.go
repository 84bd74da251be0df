package websocket_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"net/http"
	"slices"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
)

// A service shows its agent's sessions to browsers of one site. Run reads the topics; the server is an http.Handler.
func Example() {
	server, err := websocket.New("support", websocket.Config{Door: auth.Door{Origins: []string{"support.example"}}})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := server.Run(context.Background(), []string{"localhost:9092"}); err != nil {
			log.Print(err)
		}
	}()
	http.Handle("/ws", server)
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}

// identify stands for the Authenticate of auth.APIKeys, auth.Certificates or jwt.Tokens.
func identify(*http.Request) (auth.Caller, error) { return auth.Caller{}, errors.New("no credential") }

// Callers with the right control whose sessions are "*" may subscribe to all sessions.
func ExampleConfig_operators() {
	server, err := websocket.New("support", websocket.Config{
		Door: auth.Door{Authenticate: identify}, Operators: func(c auth.Caller) bool { return c.Subject != "" },
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/operators/ws", server)
}

// paying is a source of gates: one is open in every session. Use an Index of package processors/gate/gatehttp instead.
type paying struct{}

func (paying) Watch(
	_ context.Context, _, session string, _ func(opened bool, gate []byte),
) (open iter.Seq[[]byte], stop func(), err error) {
	gate := fmt.Appendf(nil, `{"gate_id":"5f0c","session_id":%q,"status":"pending","tool":"pay"}`, session)
	return slices.Values([][]byte{gate}), func() {}, nil
}

// Clients also see what waits for a person in their session.
func ExampleConfig_gates() {
	server, err := websocket.New("support", websocket.Config{Door: auth.Door{Origins: []string{"support.example"}}, Gates: paying{}})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/gates/ws", server)
}
