package instance

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// ErrOldBrokers says that the brokers are too old for exactly once.
var ErrOldBrokers = errors.New("recovery: brokers too old for exactly once")

// The requests that exactly once needs, and the Kafka version that introduced them.
var needed = []struct {
	key   int16
	least int16
	name  string
	since string
}{
	// Older versions carry no generation: a member whose partitions have moved could still commit.
	{28, 3, "TxnOffsetCommit v3", "Kafka 2.5"},
	{61, 0, "DescribeProducers", "Kafka 2.8"},
	{66, 0, "ListTransactions", "Kafka 3.0"},
}

// CheckTransactions returns an error that wraps ErrOldBrokers if a broker lacks a request that exactly once needs. It
// blocks for a request.
func CheckTransactions(client sarama.Client) error {
	broker, err := client.Controller()
	if err != nil {
		return fmt.Errorf("recovery: versions: %w", err)
	}
	resp, err := broker.ApiVersions(&sarama.ApiVersionsRequest{
		Version: 3, ClientSoftwareName: "turntable", ClientSoftwareVersion: "1",
	})
	if err != nil {
		return fmt.Errorf("recovery: versions: %w", err)
	}
	has := map[int16]int16{}
	for _, k := range resp.ApiKeys {
		has[k.ApiKey] = k.MaxVersion
	}
	for _, n := range needed {
		if most, ok := has[n.key]; !ok || most < n.least {
			return fmt.Errorf("%w: %s is missing (since %s)", ErrOldBrokers, n.name, n.since)
		}
	}
	return nil
}
