package transport_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer/settings"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/topics"
)

// A process sends the tasks of the agent support to peers. Any number of such processes share the work.
func Example() {
	brokers := []string{"localhost:9092"}
	file, err := settings.Open("config.json", settings.Config{})
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	peers := transport.New(file.Settings, transport.Config{})
	defer peers.Close()
	s, err := sink.New("support", publisher, sink.Config{Peers: true, Transports: map[string]sink.Transport{transport.Kind: peers}})
	if err != nil {
		log.Print(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx, brokers) })
	group.Go(func() error { return peers.Run(ctx, "support", brokers) })
	if err := group.Wait(); err != nil {
		log.Print(err)
	}
}

// A peer refuses a task. The receipt has the answer, with the text of the peer.
func ExampleTransport_Exchange() {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":"Not this agent."}`))
	}))
	defer peer.Close()
	current := &settings.Settings{Enabled: true, InstanceID: "hq-1", Outbound: []settings.Outbound{
		{ID: "tenant-a", BaseURL: peer.URL, Token: settings.NewSecret("T1"), Timeout: time.Minute},
	}}
	t := transport.New(func() *settings.Settings { return current }, transport.Config{})
	defer t.Close()
	task := peerwire.Attempt{
		TaskID: "t-9", Request: peerwire.Request{TaskID: "t-9", ParentInstanceID: "hq-1", Content: "count the rows"}.Body(),
		Timeout: time.Minute, Deadline: time.Now().Add(10 * time.Minute),
	}
	response, err := t.Exchange(context.Background(), sink.Attempt{Delivery: topics.Delivery{
		DeliveryID: "peer_1", Attempt: 1, Route: topics.Destination{Kind: transport.Kind, Service: "tenant-a"}, Body: task.Body(),
	}})
	fmt.Println(string(response))
	fmt.Println(err)
	// Output:
	// {"code":"peer_refused","detail":"Not this agent.","answered":true}
	// sink: attempt failed: status 403
}
