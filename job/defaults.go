package job

import "time"

// What is taken where nothing else is said, by client.Options and by postburner.yml alike,
// so that a service and a worker without settings find each other.
const (
	DefaultURL      = "beanstalk://127.0.0.1:11300" // of the server
	DefaultQueue    = "default"
	DefaultPriority = 65536 // 0 is first
	DefaultTTR      = 300 * time.Second
)
