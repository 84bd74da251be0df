package delegationhttp_test

import (
	"context"
	"log"
	"net/http"

	"github.com/turntable-streams/turntable/processors/delegation/delegationhttp"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// A service shows the results of what its agent delegated. The group (package delegation) may run in another process.
func Example() {
	index, err := delegationhttp.NewIndex("support", delegationhttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := index.Run(context.Background(), []string{"localhost:9092"}); err != nil {
			log.Print(err)
		}
	}()
	handler, err := delegationhttp.New(index, delegationhttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(delegationhttp.DelegationsPath, handler)
	mux.Handle(delegationhttp.DelegationsPath+"/", handler)
	server := httpserver.New(mux)
	server.Addr = "localhost:8080"
	log.Fatal(server.ListenAndServe())
}
