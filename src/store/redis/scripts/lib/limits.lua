-- No lock has more fields than this, unless many hold it together, nor longer texts: it is somebody's data.
local FIELDS_MAX, TEXT_MAX = 1000, 4096
local NO_LOCK = 'WRONGTYPE the key of this lock holds something that is no lock'
