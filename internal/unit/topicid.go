package unit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turntable-streams/turntable/internal/recovery"
)

// topicFile stands in the directory of a store and holds the id of the topic whose rows it has.
const topicFile = "TOPIC"

// topicName is the topic that a store belongs to.
type topicName struct {
	file string // empty: nothing to keep
	id   string
}

// checkTopic refuses a store that was filled from another topic of the same name: its offsets mean nothing in this one.
func (t *tables) checkTopic(topic string, partition int32) (topicName, error) {
	id, err := t.topicID(topic)
	if err != nil || id == "" || t.dir == "" {
		return topicName{id: id}, err
	}
	dir := filepath.Join(t.dir, fmt.Sprintf("%s.%d", topic, partition))
	was, err := os.ReadFile(filepath.Join(dir, topicFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return topicName{file: filepath.Join(dir, topicFile), id: id}, nil
	case err != nil:
		return topicName{}, fmt.Errorf("unit: %w", err)
	case string(was) != id:
		return topicName{}, fmt.Errorf("%w: topic %s, store %s: delete the directory", recovery.ErrRecreated, topic, dir)
	}
	return topicName{id: id}, nil
}

// keep writes the id once the store is there.
func (n topicName) keep() error {
	if n.file == "" {
		return nil
	}
	written := n.file + ".new"
	if err := os.WriteFile(written, []byte(n.id), 0o600); err != nil {
		return fmt.Errorf("unit: %w", err)
	}
	if err := os.Rename(written, n.file); err != nil {
		return fmt.Errorf("unit: %w", err)
	}
	return nil
}
