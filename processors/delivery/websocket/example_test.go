package websocket_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/IBM/sarama"
	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/internal/embedded"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
	"github.com/turntable-streams/turntable/topics"
)

// A service shows its agent's sessions. The server is mounted like any http.Handler and Run reads the topics.
func Example() {
	broker, err := embedded.Start() // your service uses a Kafka cluster
	if err != nil {
		panic(err)
	}
	defer broker.Close()
	catalog, err := topics.For("support")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	// processors.WithTopics also creates the topics.
	if err := topics.EnsureCluster(ctx, broker.Addrs(), config, catalog); err != nil {
		panic(err)
	}

	server, err := websocket.New("support", websocket.WithOrigins("support.example"))
	if err != nil {
		panic(err)
	}
	running := make(chan error, 1)
	go func() { running <- server.Run(ctx, broker.Addrs()) }()
	service := httptest.NewServer(server)
	defer service.Close()

	// A browser subscribes to its session. With an invalid last_event_id it gets a "resumed" frame, which confirms that.
	browser, _, err := ws.Dial(ctx, "ws"+strings.TrimPrefix(service.URL, "http"), nil)
	if err != nil {
		panic(err)
	}
	subscribe := `{"type":"subscribe","session_id":"s","last_event_id":"none"}`
	if err := browser.Write(ctx, ws.MessageText, []byte(subscribe)); err != nil {
		panic(err)
	}
	<-server.Ready()
	_, frame, err := browser.Read(ctx)
	if err != nil {
		panic(err)
	}
	kind, _ := topics.Lookup(frame, "type")
	fmt.Println(topics.Text(kind))

	to, err := processors.NewPublisher(broker.Addrs())
	if err != nil {
		panic(err)
	}
	answer := processors.Outbound{
		Topic: catalog.MessageOutput.Name(), Key: "s", Value: []byte(`{"session_id":"s","content":"Berth N4 is free."}`),
	}
	if err := to.Publish(ctx, answer); err != nil {
		panic(err)
	}
	for range 2 {
		_, frame, _ := browser.Read(ctx)
		kind, _ := topics.Lookup(frame, "type")
		data, _ := topics.Lookup(frame, "data")
		content, _ := topics.Lookup(data, "content")
		fmt.Printf("%s %q\n", topics.Text(kind), topics.Text(content))
	}
	fmt.Println(browser.Close(ws.StatusNormalClosure, ""))
	stop()
	fmt.Println(<-running, to.Close())
	// Output:
	// resumed
	// pipeline_event ""
	// chat_response "Berth N4 is free."
	// <nil>
	// <nil> <nil>
}
