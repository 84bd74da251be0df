package share_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/kafka/franz"
	"github.com/turntable-streams/turntable/processors/worker/internal/share"
)

// franz-go retries closed connections for over a minute; the workers log and retry a failed dial.
func TestPlaintextListenerIsReportedAtTheFirstConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	connections, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections++
			_, _ = io.ReadFull(conn, make([]byte, 4))
			_ = conn.Close() // with unread bytes: a reset
		}
	}()
	conf := kafka.Config()
	conf.Net.TLS.Enable, conf.Net.TLS.Config = true, &tls.Config{MinVersion: tls.VersionTLS12}
	client, err := franz.Dial([]string{listener.Addr().String()}, conf)
	require.NoError(t, err)
	defer client.Close()
	_, err = share.Probe(t.Context(), client, "g")
	require.ErrorContains(t, err, "TLS handshake")
	require.ErrorContains(t, err, "whether security.protocol (KAFKA_SECURITY_PROTOCOL) must be PLAINTEXT")
	require.NoError(t, listener.Close())
	<-ended
	require.LessOrEqual(t, connections, 2)
}
