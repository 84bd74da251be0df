package websocket_test

import (
	"context"
	"log"
	"net/http"

	"github.com/turntable-streams/turntable/processors/delivery/websocket"
)

// A service shows its agent's sessions to browsers of one site. Run reads the topics; the server is an http.Handler.
func Example() {
	server, err := websocket.New("support", websocket.WithOrigins("support.example"))
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
