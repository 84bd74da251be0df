package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// brokersWithin is how long the brokers may take to answer, and startWithin how long all processes may take to start.
	brokersWithin = 10 * time.Second
	startWithin   = time.Minute
)

// addressesOf returns the addresses of the flag brokers.
func addressesOf(list string) (addresses []string, err error) {
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("-brokers: %q is not host:port", address)
		}
		addresses = append(addresses, address)
	}
	if list != "" && addresses == nil {
		return nil, fmt.Errorf("-brokers: %q has no address", list)
	}
	return addresses, nil
}

// checkBrokers returns an error that names the brokers if none of them answers in time. It does not retry, so that the user sees
// the reason immediately. Without it the processors would retry until the time limit of the play.
func checkBrokers(ctx context.Context, brokers []string, within time.Duration) error {
	names := strings.Join(brokers, ",")
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RequestRetries(0))
	if err != nil {
		return fmt.Errorf("brokers %s: %w", names, err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	stop := context.AfterFunc(ctx, client.Close) // a connection that waits for a silent broker has a limit of its own
	defer stop()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker of %s answers (limit %s): %w", names, within, err)
	}
	return nil
}
