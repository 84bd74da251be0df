package processors

import "errors"

var errNoDirectory = errors.New("LevelDB without a directory")

// Storage says where a processor keeps its tables between Kafka and its handlers. What it holds is a copy: the group's
// changelog topic is the original.
type Storage struct {
	dir string
	err error
}

// Memory keeps tables in memory: every start reads the whole changelog.
func Memory() Storage { return Storage{} }

// LevelDB keeps tables in a directory, so that a start reads only what came since. The directory belongs to one
// instance of one group; a second one that uses it fails.
func LevelDB(dir string) Storage {
	if dir == "" {
		return Storage{err: errNoDirectory}
	}
	return Storage{dir: dir}
}
