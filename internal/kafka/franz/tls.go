package franz

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// secured makes the TLS handshake of a connection. As in Sarama, the name to verify is the broker's host unless the
// configuration names one.
func secured(ctx context.Context, conn net.Conn, conf *sarama.Config, addr string) (net.Conn, error) {
	config := conf.Net.TLS.Config.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		config.ServerName = host
	}
	limit, cancel := context.WithTimeout(ctx, conf.Net.DialTimeout)
	defer cancel()
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(limit); err != nil {
		_ = conn.Close()
		if limit.Err() != nil {
			return nil, err
		}
		return nil, handshakeFailure(conf, conn, err)
	}
	return client, nil
}

// handshakeFailure returns the failure as that of a dial. franz-go retries all other closed connections without a word, for
// a minute and longer; the callers retry a dial, and log it. Its cause is text, because a cause would be judged instead.
func handshakeFailure(conf *sarama.Config, conn net.Conn, err error) error {
	cause := fmt.Errorf("TLS handshake: %w", kafka.Explain(conf, err))
	return &net.OpError{Op: "dial", Net: "tcp", Addr: conn.RemoteAddr(), Err: errors.New(cause.Error())}
}
