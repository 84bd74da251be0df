package processors

import "errors"

var errNoDirectory = errors.New("LevelDB: empty directory name")

// Storage is where a processor stores its tables locally. The local store is a copy of the group's changelog topic.
type Storage struct {
	dir string
	err error
}

// Memory stores tables in memory. Every start reads the whole changelog.
func Memory() Storage { return Storage{} }

// LevelDB stores tables on disk in dir. A start reads only the part of the changelog that was written after the last
// flush. A directory belongs to one instance of one group; a second instance that opens it fails. An empty dir is an
// error of New.
func LevelDB(dir string) Storage {
	if dir == "" {
		return Storage{err: errNoDirectory}
	}
	return Storage{dir: dir}
}
