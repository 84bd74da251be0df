package gatehttp_test

import (
	"context"
	"log"
	"net/http"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// A service lets people decide what its agent waits for. The gate group (package gate) may run in another process.
func Example() {
	brokers := []string{"localhost:9092"}
	index, err := gatehttp.NewIndex("support", gatehttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := index.Run(context.Background(), brokers); err != nil {
			log.Print(err)
		}
	}()
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := gatehttp.New(index, publisher, gatehttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(gatehttp.GatesPath, handler)
	mux.Handle(gatehttp.GatesPath+"/", handler)
	server := httpserver.New(mux)
	server.Addr = "localhost:8080"
	log.Fatal(server.ListenAndServe())
}
