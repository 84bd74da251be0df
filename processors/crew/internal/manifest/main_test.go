package manifest_test

import _ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
