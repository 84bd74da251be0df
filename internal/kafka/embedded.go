package kafka

import (
	"fmt"

	"github.com/IBM/sarama"
)

// EmbeddedCluster is the cluster ID of the broker of package embedded.
const EmbeddedCluster = "kfake"

// Embedded reports whether a client is connected to the broker of package embedded. It asks for the metadata of a topic, which need
// not exist.
func Embedded(client sarama.Client, topic string) (bool, error) {
	broker, err := client.Controller()
	if err != nil {
		return false, err
	}
	resp, err := broker.GetMetadata(sarama.NewMetadataRequest(client.Config().Version, []string{topic}))
	if err != nil {
		return false, fmt.Errorf("metadata: %w", err)
	}
	return resp.ClusterID != nil && *resp.ClusterID == EmbeddedCluster, nil
}
