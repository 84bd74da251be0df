package turnhttp_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// A program serves the doors of an agent until it is told to stop. Shutdown answers the open requests before the publisher
// is closed.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	publisher, err := processors.NewPublisher([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	handler, err := turnhttp.New("pilot", publisher, turnhttp.Config{
		Door: auth.Door{Authenticate: func(r *http.Request) (auth.Caller, error) {
			user, password, ok := r.BasicAuth()
			if !ok || password != "open sesame" {
				return auth.Caller{}, errors.New("wrong password")
			}
			return auth.Caller{UserID: user}, nil
		}},
		CallbackSecrets: []string{os.Getenv("TOOL_CALLBACK_SECRET")}, // at least 32 bytes
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httpserver.New(handler)
	listener, err := httpserver.Listen("localhost:8080")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
			stop()
		}
	}()
	<-ctx.Done()
	limited, cancel := context.WithTimeout(context.Background(), 35*time.Second)
	defer cancel()
	if err := server.Shutdown(limited); err != nil {
		log.Print(err)
	}
}
