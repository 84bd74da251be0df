package processors_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
)

// closing starts a listener that closes its connections after their first bytes, as a plaintext Kafka does that reads a TLS
// handshake, and returns its address. It makes a TLS handshake first if config is set.
func closing(t *testing.T, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if config != nil {
				conn = tls.Server(conn, config)
			}
			_, _ = io.ReadFull(conn, make([]byte, 4))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

func TestMissingOrSuperfluousTLSIsNamed(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	config := &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	server.Close()
	for want, tc := range map[string]struct {
		address  string
		protocol string
	}{
		"whether security.protocol (KAFKA_SECURITY_PROTOCOL) must be PLAINTEXT or SASL_PLAINTEXT": {closing(t, nil), "SSL"},
		"whether security.protocol (KAFKA_SECURITY_PROTOCOL) must be SSL or SASL_SSL":             {closing(t, config), "PLAINTEXT"},
	} {
		p, err := processors.NewPublisher([]string{tc.address}, processors.WithProperties(map[string]string{
			"security.protocol": tc.protocol,
		}))
		require.NoError(t, err)
		err = p.Publish(t.Context(), processors.Outbound{Topic: "t", Key: "k"})
		require.ErrorContains(t, err, want)
		require.False(t, errors.Is(err, context.DeadlineExceeded))
		require.NoError(t, p.Close())
	}
}

func TestConnectNamesTheCauseAndEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := listener.Addr().String()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	_, err = processors.Connect(ctx, []string{free}) // accepts connections and never answers
	require.ErrorIs(t, err, stopped)
	require.ErrorContains(t, err, free)
	require.NoError(t, listener.Close())

	_, err = processors.Connect(t.Context(), []string{free})
	require.ErrorContains(t, err, free)
	require.ErrorContains(t, err, "nothing listens there")
	_, err = processors.Connect(t.Context(), []string{"no port"})
	require.ErrorIs(t, err, processors.ErrConfig)
}
