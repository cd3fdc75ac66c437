// A program of test/reach.py, which says what it must do: with HDF5's C++ interface.
#include <H5Cpp.h>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

const hsize_t rows = 100, columns = 1000;

// Row N of the dataset becomes N + 1.
static void put(H5::H5File &file, int n)
{
    const hsize_t all[] = {rows, columns}, row[] = {1, columns}, start[] = {static_cast<hsize_t>(n), 0};
    if (!file.nameExists("d")) {
        H5::DSetCreatPropList how;
        how.setChunk(2, row);
        file.createDataSet("d", H5::PredType::NATIVE_INT, H5::DataSpace(2, all), how);
    }
    H5::DataSet set = file.openDataSet("d");
    H5::DataSpace space = set.getSpace();
    space.selectHyperslab(H5S_SELECT_SET, row, start);
    set.write(std::vector<int>(columns, n + 1).data(), H5::PredType::NATIVE_INT, H5::DataSpace(2, row), space);
}

int main(int, char **argv)
{
    const std::string verb = argv[1], word = argv[2] ? argv[2] : "";
    if (verb == "read") {
        std::vector<int> values(rows * columns);
        H5::H5File file("cpp.h5" + word, H5F_ACC_RDONLY);
        file.openDataSet("d").read(values.data(), H5::PredType::NATIVE_INT);
        for (hsize_t i = 0; i < rows && values[i * columns] != 0; i++)
            std::cout << values[i * columns] << ' ';
        return 0;
    }
    H5::H5File file("cpp.h5", access("cpp.h5", F_OK) == 0 ? H5F_ACC_RDWR : H5F_ACC_EXCL);
    put(file, verb == "write" ? std::stoi(word) : 3);
    if (verb == "crash") {
        file.flush(H5F_SCOPE_GLOBAL);
        put(file, 4);
        std::cout << "ready" << std::endl;
        sleep(600);
    }
}
