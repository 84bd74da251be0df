package websocket

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// BenchmarkResume measures a resume from topics with 80 MB of other sessions: alone, and beside 100 clients that resume by
// forged event IDs.
func BenchmarkResume(b *testing.B) {
	for name, hostile := range map[string]int{"alone": 0, "beside 100": 100} {
		b.Run(name, func(b *testing.B) {
			broker, err := embedded.Start(embedded.Config{Partitions: 1})
			require.NoError(b, err)
			defer broker.Close()
			catalog, err := topics.For("pilot")
			require.NoError(b, err)
			require.NoError(b, topics.EnsureCluster(b.Context(), broker.Addrs(), kafka.Config(), catalog))
			s, stop := running(b, broker.Addrs())
			defer stop()
			began := clampMS(time.Now()) - 1000
			to, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.MaxBufferedRecords(5000))
			require.NoError(b, err)
			defer to.Close()
			value := []byte(`{"content":"` + strings.Repeat("y", 1000) + `"}`)
			for range 40_000 {
				for _, topic := range []string{catalog.MessageOutput.Name(), catalog.EnrichedMessageInput.Name()} {
					to.Produce(b.Context(), &kgo.Record{Topic: topic, Key: []byte("other"), Value: value}, nil)
				}
			}
			require.NoError(b, to.Flush(b.Context()))

			position := eventID{feed: 9, kind: kindEvent, session: digestOf("s"), born: began, at: clampMS(time.Now())}
			valid := s.signer.sign("s", position.String())
			position.session = digestOf("ghost")
			forged := position.String() + "~" + strings.Repeat("A", 22)
			ctx, leave := context.WithCancel(b.Context())
			var clients sync.WaitGroup
			for range hostile {
				clients.Go(func() {
					c, _, err := ws.Dial(ctx, s.http.URL, &ws.DialOptions{HTTPClient: s.http.Client()})
					if err != nil {
						return
					}
					defer c.CloseNow()
					frame := []byte(`{"type":"subscribe","session_id":"ghost","last_event_id":"` + forged + `"}`)
					for c.Write(ctx, ws.MessageText, frame) == nil {
						if _, _, err := c.Read(ctx); err != nil {
							return
						}
					}
				})
			}
			for b.Loop() {
				s.open().resume("s", valid).require(`"complete":true`)
			}
			leave()
			clients.Wait()
		})
	}
}
