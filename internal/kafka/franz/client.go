// Package franz makes clients of franz-go, for what Sarama lacks, that connect as the Sarama clients of a program do.
package franz

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// idle is how long a connection may be idle. A share session ends with its connection and the broker then releases its
// records, so this is longer than any interval of renewals.
const idle = 5 * time.Minute

// Dial returns a client for the brokers with the TLS, SASL and timeouts of a Sarama configuration, and more options. It does
// not connect.
func Dial(brokers []string, conf *sarama.Config, more ...kgo.Opt) (*kgo.Client, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.ClientID(conf.ClientID),
		kgo.ConnIdleTimeout(idle),
		kgo.RequestTimeoutOverhead(conf.Net.ReadTimeout),
		kgo.Dialer(dialer(conf)),
		kgo.DisableClientMetrics(),
	}
	if conf.Net.SASL.Enable {
		mechanism, err := mechanismOf(conf)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: client: %w", err)
	}
	return client, nil
}

func dialer(conf *sarama.Config) func(context.Context, string, string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: conf.Net.DialTimeout, KeepAlive: conf.Net.KeepAlive, LocalAddr: conf.Net.LocalAddr}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := plain.DialContext(ctx, network, addr)
		if err != nil || !conf.Net.TLS.Enable {
			return conn, err
		}
		return secured(ctx, conn, conf, addr)
	}
}

func mechanismOf(conf *sarama.Config) (sasl.Mechanism, error) {
	s := conf.Net.SASL
	switch s.Mechanism {
	case sarama.SASLTypePlaintext, "":
		return plain.Auth{Zid: s.AuthIdentity, User: s.User, Pass: s.Password}.AsMechanism(), nil
	case sarama.SASLTypeSCRAMSHA256:
		return scram.Auth{Zid: s.SCRAMAuthzID, User: s.User, Pass: s.Password}.AsSha256Mechanism(), nil
	case sarama.SASLTypeSCRAMSHA512:
		return scram.Auth{Zid: s.SCRAMAuthzID, User: s.User, Pass: s.Password}.AsSha512Mechanism(), nil
	case sarama.SASLTypeOAuth:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := s.TokenProvider.Token()
			if err != nil {
				return oauth.Auth{}, fmt.Errorf("kafka: token: %w", err)
			}
			return oauth.Auth{Token: token.Token, Extensions: token.Extensions}, nil
		}), nil
	default:
		return nil, fmt.Errorf("kafka: share groups and archives do not support the SASL mechanism %s", s.Mechanism)
	}
}
