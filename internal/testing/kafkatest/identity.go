package kafkatest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

// clusterID returns the ID of the cluster in dir, which its first start generates. Nodes of different clusters reject each
// other, so a cluster can use a port that another one used before.
func clusterID(dir string) (string, error) {
	path := filepath.Join(dir, "cluster.id")
	if id, err := os.ReadFile(path); err == nil {
		return string(id), nil
	}
	var uuid [16]byte
	// Read never fails.
	_, _ = rand.Read(uuid[:])
	// The format command would parse a leading hyphen as an option.
	uuid[0] &= 0x7f
	id := base64.RawURLEncoding.EncodeToString(uuid[:])
	if err := os.WriteFile(path, []byte(id), 0o644); err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	return id, nil
}
