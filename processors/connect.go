package processors

import (
	"context"
	"fmt"
	"strings"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// Connect returns a connected Sarama client with the configuration that the options of New result in (ClientConfig), for
// the requests of a caller's own: about topics, offsets and groups. The caller closes it.
//
// It blocks until a broker has answered or ctx ends. The error names the addresses and, if it is known, the cause and what
// to check: nothing listens, an unknown name, rejected credentials, TLS on one side only, an address that never answers. An
// error about the options wraps ErrConfig.
func Connect(ctx context.Context, brokers []string, opts ...Option) (sarama.Client, error) {
	conf, _, err := ClientConfig(brokers, opts...)
	if err != nil {
		return nil, err
	}
	kafka.LimitGreeting(conf)
	type connected struct {
		client sarama.Client
		err    error
	}
	result := make(chan connected, 1)
	go func() {
		client, err := sarama.NewClient(brokers, conf)
		result <- connected{client, err}
	}()
	select {
	case c := <-result:
		if c.err != nil {
			return nil, fmt.Errorf("processors: connect: %w", kafka.Explain(conf, c.err, brokers...))
		}
		return c.client, nil
	case <-ctx.Done():
		go func() { // Sarama cannot be cancelled
			if c := <-result; c.err == nil {
				_ = c.client.Close()
			}
		}()
		return nil, fmt.Errorf("processors: connect: brokers %s have not answered: %w", strings.Join(brokers, ","), context.Cause(ctx))
	}
}
