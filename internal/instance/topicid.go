package instance

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/IBM/sarama"
)

// topicFile is the file in a store's directory that holds the id of the topic whose rows the store has.
const topicFile = "TOPIC"

// topicName is the topic that a store belongs to.
type topicName struct {
	file string // empty: the id is not written
	id   string
}

// checkTopic returns an error that wraps ErrRecreated if a store was filled from an earlier topic of the same
// name: its offsets are not valid in the current one.
func (t *tables) checkTopic(topic string, partition int32) (topicName, error) {
	id, err := t.topicID(topic)
	if err != nil || id == "" || t.dir == "" {
		return topicName{id: id}, err
	}
	dir := t.path(topic, partition)
	name := topicName{file: filepath.Join(dir, topicFile), id: id}
	was, err := os.ReadFile(name.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, nil
	case err != nil:
		return topicName{}, fmt.Errorf("instance: %w", err)
	case !isTopicID(was):
		// A power loss can leave the file without its content if it was written by a build that did not sync it. The check
		// is skipped once, as for a missing file.
		return name, nil
	case string(was) != id:
		return topicName{}, fmt.Errorf("%w: topic %s, store %s: delete the directory", ErrRecreated, topic, dir)
	}
	return name, nil
}

// path returns the directory of a store, as store.Builder names it.
func (t *tables) path(topic string, partition int32) string {
	return filepath.Join(t.dir, fmt.Sprintf("%s.%d", topic, partition))
}

// isTopicID reports whether the bytes are a topic id as TopicManager.TopicID writes it.
func isTopicID(b []byte) bool {
	raw, err := hex.DecodeString(string(b))
	return err == nil && len(raw) == len(sarama.Uuid{})
}

// keep writes the id once the store is open. Its directory may be a new one since checkTopic.
func (n topicName) keep() error {
	if n.file == "" {
		return nil
	}
	if was, err := os.ReadFile(n.file); err == nil && string(was) == n.id {
		return nil
	}
	if err := replaceFile(n.file, []byte(n.id)); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	return nil
}

// replaceFile writes a file so that a power loss leaves the old content or the new one. Without the two syncs the new
// name can reach the disk before the bytes do, or not at all.
func replaceFile(path string, content []byte) error {
	written, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = written.Write(content)
	if err == nil {
		err = written.Sync()
	}
	if err = errors.Join(err, written.Close()); err != nil {
		return err
	}
	if err := os.Rename(written.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes the names in a directory survive a power loss, if the system supports it: Windows cannot open a
// directory for a sync, and some file systems return EINVAL.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
