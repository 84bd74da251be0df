package door_test

import (
	"context"
	"log"
	"net/http"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate/door"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// A service lets people decide what its agent waits for. The gate group (package gate) may run in another process.
func Example() {
	brokers := []string{"localhost:9092"}
	index, err := door.NewIndex("support")
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
	handler, err := door.New(index, publisher)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(door.GatesPath, handler)
	mux.Handle(door.GatesPath+"/", handler)
	server := httpserver.New(mux)
	server.Addr = "localhost:8080"
	log.Fatal(server.ListenAndServe())
}
