package share

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/IBM/sarama"
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
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return client, nil
}
