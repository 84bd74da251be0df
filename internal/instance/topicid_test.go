package instance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A power loss can leave the file of the topic id empty, or filled with zeros, or in the middle of being replaced.
func TestTopicIDThatWasNotFullyWrittenIsWrittenAgain(t *testing.T) {
	const id, other = "0123456789abcdef0123456789abcdef", "f123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		left map[string]string // files
		err  error
	}{
		"no file":            {},
		"empty":              {left: map[string]string{topicFile: ""}},
		"zeros":              {left: map[string]string{topicFile: string(make([]byte, len(id)))}},
		"cut off":            {left: map[string]string{topicFile: other[:7]}},
		"not renamed":        {left: map[string]string{topicFile + ".new": other[:7]}},
		"the id":             {left: map[string]string{topicFile: id, topicFile + ".new": ""}},
		"of another topic":   {left: map[string]string{topicFile: other}, err: ErrRecreated},
		"empty, then longer": {left: map[string]string{topicFile: "", topicFile + ".new": other + other}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := filepath.Join(dir, "g-table.0")
			require.NoError(t, os.MkdirAll(store, 0o700))
			for file, content := range c.left {
				require.NoError(t, os.WriteFile(filepath.Join(store, file), []byte(content), 0o600))
			}
			tables := &tables{dir: dir, topicID: func(string) (string, error) { return id, nil }}
			topic, err := tables.checkTopic("g-table", 0)
			require.ErrorIs(t, err, c.err)
			if err != nil {
				return
			}
			require.NoError(t, topic.keep())
			written, err := os.ReadFile(filepath.Join(store, topicFile))
			require.NoError(t, err)
			require.Equal(t, id, string(written))
		})
	}
}
