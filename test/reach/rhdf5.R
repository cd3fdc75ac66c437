# A program of test/reach.py, which says what it must do: with the R package rhdf5.
suppressPackageStartupMessages(library(rhdf5))
words <- commandArgs(TRUE)

# Column n + 1 of the dataset becomes n + 1.
put <- function(file, n) {
    if (!H5Lexists(file, "d"))
        h5createDataset(file, "d", c(1000, 100), storage.mode = "integer", chunk = c(1000, 1))
    h5write(rep(n + 1L, 1000), file, "d", index = list(NULL, n + 1))
}

if (words[1] == "read") {
    file <- H5Fopen(paste0("rhdf5.h5", words[-1]), "H5F_ACC_RDONLY")
    values <- h5read(file, "d")[1000, ]
    cat(values[values != 0])
} else {
    file <- if (file.exists("rhdf5.h5")) H5Fopen("rhdf5.h5") else H5Fcreate("rhdf5.h5")
    put(file, if (words[1] == "write") as.integer(words[2]) else 3)
    if (words[1] == "crash") {
        H5Fflush(file)
        put(file, 4)
        cat("ready\n")
        flush(stdout())
        Sys.sleep(600)
    }
}
H5Fclose(file)
