package peerhttp_test

import (
	"context"
	"errors"
	"log"
	"net/http"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
)

// A service accepts the tasks of its peers, and sends those of its own callers. The group of tasks (package peer) and the sink
// may run in other processes.
func Example() {
	brokers := []string{"localhost:9092"}
	file, err := peer.OpenSettings("config.json", peer.SettingsConfig{})
	if err != nil {
		log.Fatal(err)
	}
	replies, err := peerhttp.NewReplies("front", peerhttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := replies.Run(context.Background(), brokers); err != nil {
			log.Print(err)
		}
	}()
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := peerhttp.New(replies, publisher, file.Settings, peerhttp.Config{
		Door: auth.Door{Authenticate: func(r *http.Request) (auth.Caller, error) {
			user, password, ok := r.BasicAuth()
			if !ok || password != "open sesame" {
				return auth.Caller{}, errors.New("wrong password")
			}
			return auth.Caller{UserID: user}, nil
		}},
		Agents: []string{"front", "research"}, DefaultAgent: "front", AppVersion: "1.4.0",
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httpserver.New(handler)
	server.Addr = "localhost:8080"
	log.Fatal(server.ListenAndServe())
}
