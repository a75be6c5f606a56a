package job

// Tube returns the name of a queue's tube, postburner.ENVIRONMENT.QUEUE, which services
// and workers, those in Ruby included, have to agree on. The parts are taken as they are:
// whether beanstalkd accepts the name is for the caller to check, with beanstalk.CheckTube.
func Tube(environment, queue string) string { return "postburner." + environment + "." + queue }
